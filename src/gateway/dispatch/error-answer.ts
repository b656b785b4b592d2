import { gunzipSync, inflateSync } from 'node:zlib';
import type { UpstreamHeaders } from '../contracts.ts';

/** Of an engine's error answer so much is read, and so much of what it decodes to. */
const BYTES_MAX = 64 * 1024;

/** An answer by which an engine refuses or fails: its status, and its words as far as they are read. */
export class ErrorAnswer {
  readonly status: number;
  readonly #headers: UpstreamHeaders;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(status: number, headers: UpstreamHeaders) {
    this.status = status;
    this.#headers = headers;
  }

  /** False once more than is read has come. */
  add(piece: Buffer): boolean {
    this.#bytes += piece.length;
    if (this.#bytes <= BYTES_MAX) this.#pieces.push(piece);
    return this.#bytes <= BYTES_MAX;
  }

  /** Headers and body, a coding undone where it can be: otherwise nobody could read the words. */
  read(): { headers: UpstreamHeaders; body: Buffer } {
    const body = Buffer.concat(this.#pieces);
    const decoded = decode(body, this.#headers['content-encoding']);
    if (!decoded) return { headers: this.#headers, body };
    const { 'content-encoding': _, ...headers } = this.#headers;
    return { headers, body: decoded };
  }
}

function decode(body: Buffer, coding: UpstreamHeaders[string]): Buffer | undefined {
  if (coding !== 'gzip' && coding !== 'deflate') return undefined;
  try {
    return (coding === 'gzip' ? gunzipSync : inflateSync)(body, { maxOutputLength: BYTES_MAX });
  } catch {
    return undefined; // cut short, too long, or not what it says: its words stay unread
  }
}
