import { z } from 'zod';
import { parseDuration, parseRate, parseSize } from '../../kernel/units.ts';

/** The scalar values of the configuration file: what is written, and what the program reads. */

/** Written `450ms`, `2s`, `24h`; read as milliseconds. */
export const duration = z
  .string({ error: 'expected a duration such as 450ms, 2s or 24h' })
  .regex(/^\d+(\.\d+)?(ms|s|min|m|h|d)$/, 'expected a duration such as 450ms, 2s or 24h')
  .transform((text) => parseDuration(text)!)
  .meta({ title: 'duration' });

/** A time limit, or a period: no time at all would let nothing happen, or everything at once. */
export const durationAboveZero = duration.refine((ms) => ms > 0, {
  error: 'expected a duration above 0, such as 450ms, 2s or 24h',
});

/** Written `8MiB`; read as bytes. */
export const size = z
  .string({ error: 'expected a size such as 512KiB, 8MiB or 2GiB' })
  .regex(/^\d+(\.\d+)?(B|KB|MB|GB|KiB|MiB|GiB|TiB)$/, 'expected a size such as 512KiB, 8MiB or 2GiB')
  .transform((text) => parseSize(text)!)
  .meta({ title: 'size' });

/** Written `200/s` or `2000000/min`; read as an amount per seconds. */
export const rate = z
  .string({ error: 'expected a rate such as 200/s or 2000000/min' })
  .regex(/^\d+(\.\d+)?\/(s|min|h|d)$/, 'expected a rate such as 200/s or 2000000/min')
  .transform((text) => parseRate(text)!)
  .meta({ title: 'rate' });

/** A whole number within bounds. */
export const whole = (min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  z
    .int({ error: `expected a whole number of ${min} or more` })
    .min(min, `expected a whole number of ${min} or more`)
    .max(max, `expected a whole number of at most ${max}`);

/** What keys under `backends`, `routes`, `tenants`, `models` and `pipelines` may look like. */
export const name = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}$/,
    'expected a name of letters, digits and . _ : / @ -, starting with a letter or digit',
  )
  .meta({ title: 'name' });

/** `HOST:PORT`. */
export const address = z
  .string({ error: 'expected HOST:PORT, such as 127.0.0.1:7070' })
  .refine(
    (text) => {
      const match = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})$/.exec(text);
      return match !== null && Number(match[2]) <= 65_535;
    },
    { error: 'expected HOST:PORT with a port of 0 to 65535, such as 127.0.0.1:7070' },
  )
  .meta({ title: 'address' });

/** An http or https address without credentials, query or fragment; a trailing slash is dropped. */
export const url = z
  .string({ error: 'expected an address such as http://10.0.0.5:8000/v1' })
  .refine(
    (text) => {
      if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return false;
      const parsed = new URL(text);
      return parsed.username === '' && parsed.search === '' && parsed.hash === '';
    },
    { error: 'expected an http or https address such as http://10.0.0.5:8000/v1' },
  )
  .transform((text) => text.replace(/\/+$/, ''))
  .meta({ title: 'URL' });

/** A SHA-256, written `sha256:` and 64 hexadecimal digits. */
export const hash = z
  .string()
  .regex(/^sha256:[0-9a-f]{64}$/, 'expected sha256: and 64 lower-case hexadecimal digits')
  .meta({ title: 'hash' });

/** A value that is never printed. References such as ${env:NAME} and ${file:PATH} have been resolved before it is checked. */
export const secret = z
  .string()
  .min(1, 'expected a value that is not empty')
  .meta({ title: 'secret', secret: true });

/** A secret that is sent as the value of a header: one line, of characters that a header can hold (RFC 9110, 5.5). */
export const headerSecret = secret.regex(
  /^[\t\x20-\x7e\x80-\xff]*$/,
  'expected one line without control characters, as a header can carry it',
);

/** The name of a header of one's own; what frames and addresses a request is Armature's to say. */
export const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'expected the name of a header, such as api-key')
  .refine((text) => !FRAMING.has(text.toLowerCase()), {
    error: 'expected a header that does not frame or address the request',
  });

const FRAMING = new Set([
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The path of a file that must be there; a relative one is taken from the folder of the configuration file it stands in. */
export const file = z.string().min(1, 'expected the path of a file').meta({ title: 'path', file: true });

/** The path of a chat template, as such a file. */
export const templateFile = file.meta({ title: 'path', file: true, jinja: true });

/** The path of a tokenizer, too large to be read whole here: it must be there and look like one, and whoever uses it reads it. */
export const tokenizerFile = z
  .string()
  .min(1, 'expected the path of a file')
  .meta({ title: 'path', file: true, large: true });
