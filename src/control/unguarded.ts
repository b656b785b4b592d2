import { isKeptToLoopback } from '../config/checks.ts';
import type { Fault } from '../config/faults.ts';
import type { Settings } from '../config/schema/index.ts';

/**
 * What would leave a listener open to other machines: a listener keeps the address that it began with until the next
 * start, so what guards that address may not be taken away before. The file alone may be sound, with its new address.
 */
export function unguarded(began: Settings, next: Settings, file: string): Fault[] {
  const fault = (path: string, listen: string): Fault => ({
    code: 'contradiction',
    file,
    line: 0,
    column: 0,
    path,
    message: `cannot be taken away while ${listen} is listened on, which other machines can reach: start Armature again to change both`,
  });
  const faults: Fault[] = [];
  if (!isKeptToLoopback(began.gateway.listen) && next.tenants === undefined) {
    faults.push(fault('tenants', began.gateway.listen));
  }
  if (!isKeptToLoopback(began.admin.listen) && next.admin.tokens.length === 0) {
    faults.push(fault('admin.tokens', began.admin.listen));
  }
  return faults;
}
