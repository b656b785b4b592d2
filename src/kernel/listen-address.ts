import { isIPv4 } from 'node:net';

/** `HOST:PORT` of the configuration; IPv6 hosts stand in brackets. */
export function hostAndPort(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':');
  return { host: bare(address.slice(0, colon)), port: Number(address.slice(colon + 1)) };
}

/**
 * Whether a host reaches this machine alone: `localhost`, 127.0.0.0/8 or ::1, in brackets or not. Any other name may stand
 * for an address that others reach, `127.0.0.1.example.org` among them.
 */
export function isLoopback(host: string): boolean {
  const name = bare(host.toLowerCase());
  return name === 'localhost' || name === '::1' || (isIPv4(name) && name.startsWith('127.'));
}

function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}
