/** Keeps secrets out of everything that is shown. */

/** Shown instead of a secret. */
export const MASK = '***';

/** Keys below which nothing is shown, even where the schema does not know them: a key may be misspelt or misplaced. */
const SECRET_KEY =
  /^(auth|bearer|password|passwd|value|token|secret|api[_-]?key|authorization|credentials?)$/i;

export const isSecretKey = (key: string | number): boolean => typeof key === 'string' && SECRET_KEY.test(key);

/**
 * A key as it may be shown. Below a key for secrets it may be a secret that was written in the wrong place, as in
 * `auth: { bearer sk-123 }`: only a short word without digits is taken for a key there.
 */
export function shownKey(key: string, path: readonly (string | number)[]): string {
  return !path.some(isSecretKey) || /^[A-Za-z_-]{1,16}$/.test(key) ? key : MASK;
}

const CREDENTIALS = /(\/\/)([^/\s@"']+)(@)/g;

/** `postgres://user:password@host` without its user and password. */
export function maskCredentials(text: string): string {
  return text.replace(CREDENTIALS, `$1${MASK}$3`);
}

const PAIR =
  /\b(bearer|password|passwd|value|token|secret|api[_-]?key|authorization|credentials?)(["']?\s*[:=]\s*["']?)([^\s"',}\]]+)/gi;

/** Blots out what looks like a secret in a line of a file, character by character, so that columns stay right. */
export function blotLine(line: string): string {
  const blot = (text: string): string => (text.startsWith('${') ? text : '*'.repeat(text.length));
  return line
    .replace(PAIR, (_, key: string, between: string, value: string) => key + between + blot(value))
    .replace(
      CREDENTIALS,
      (_, before: string, inner: string, after: string) => before + '*'.repeat(inner.length) + after,
    );
}
