/**
 * How versions are named: `NAME@3` by number, `NAME@production` by alias. An alias begins with a letter, so that no text
 * can mean both, and what is read of it is typed: a number and an alias never meet as one key.
 */
export type Reference = { model: string; number: number } | { model: string; alias: string };

/** Names of models: they stand in addresses and in file names. */
export const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
export const ALIAS_NAME = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;
/** What an addition is known by, for it to be made once. */
export const ADDITION_KEY = /^[!-~]{1,200}$/;
export const ADDITION_KEY_SAYS = 'expected 200 letters, digits and signs at most, without spaces';
export const REFERENCE =
  /^([A-Za-z0-9][A-Za-z0-9._-]{0,99})@(?:([1-9]\d{0,8})|([A-Za-z][A-Za-z0-9._-]{0,63}))$/;

/** Undefined for what is none. */
export function readReference(text: string): Reference | undefined {
  const [, model, number, alias] = REFERENCE.exec(text) ?? [];
  if (model === undefined) return undefined;
  return number === undefined ? { model, alias: alias! } : { model, number: Number(number) };
}

export function writeReference(reference: Reference): string {
  return `${reference.model}@${'number' in reference ? reference.number : reference.alias}`;
}
