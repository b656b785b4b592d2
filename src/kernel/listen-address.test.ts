import { expect, it } from 'vitest';
import { hostAndPort, isLoopback } from './listen-address.ts';

it.each([
  ['127.0.0.1:7070', '127.0.0.1', 7070],
  ['[::1]:80', '::1', 80],
  ['gateway.internal:0', 'gateway.internal', 0],
])('%s is a host and a port', (address, host, port) => {
  expect(hostAndPort(address)).toEqual({ host, port });
});

it.each(['localhost', 'LOCALHOST', '127.0.0.1', '127.8.9.10', '::1', '[::1]'])(
  '%s is this machine alone',
  (host) => {
    expect(isLoopback(host)).toBe(true);
  },
);

it.each(['0.0.0.0', '[::]', '10.0.0.1', '127.0.0.1.example.org', '127.evil', 'localhost.example.org', ''])(
  '%s may be reached by others',
  (host) => {
    expect(isLoopback(host)).toBe(false);
  },
);
