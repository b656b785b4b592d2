/** What was asked of the registry cannot be done, in words for whoever asked. */
export class Refused extends Error {
  readonly code: 'invalid_request' | 'not_found' | 'conflict';
  /** Each reason, where there are several. */
  readonly faults: string[] | undefined;

  constructor(code: Refused['code'], message: string, faults?: string[]) {
    super(message);
    this.name = 'Refused';
    this.code = code;
    this.faults = faults;
  }
}
