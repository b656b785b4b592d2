import type { IncomingMessage } from 'node:http';
import { LingeringCaller } from './lingering-caller.ts';

/** Whether the body goes to the disk as it comes: it may be larger than any that is read whole. */
export function isUpload({ method, url }: IncomingMessage): boolean {
  return method === 'POST' && /^(?:https?:\/\/[^/?]+)?\/v1\/files(?:\?|$)/i.test(url ?? '');
}

/** A caller whose body is read by whoever answers it, who may answer before its end. */
export class UploadCaller extends LingeringCaller {
  get incoming(): IncomingMessage {
    return this.request;
  }
}
