import type { Output } from '../src/cli/output.ts';

/** What a command prints, instead of a terminal. */
export class Printed {
  out = '';
  err = '';

  readonly output: Output = {
    tty: false,
    print: (text) => {
      this.out += `${text}\n`;
    },
    write: (text) => {
      this.out += text;
    },
    json: (value) => {
      this.out += `${JSON.stringify(value)}\n`;
    },
    note: (text) => {
      this.err += `${text}\n`;
    },
  };
}
