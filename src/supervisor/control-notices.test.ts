import { expect, test } from 'vitest';
import type { PartNotice } from '../links/messages.ts';
import { ControlNotices } from './control-notices.ts';

const started = (pid: number): PartNotice => ({
  type: 'part-started',
  part: 'p',
  pid,
  wallMs: 0,
  adopted: false,
});

test('notices wait for control, in order, and the oldest go first when there are too many', () => {
  const notices = new ControlNotices();
  for (let pid = 1; pid <= 1500; pid++) notices.tell(started(pid));
  const heard: PartNotice[] = [];
  const send = (notice: PartNotice) => heard.push(notice) > 0;
  notices.up(send);
  expect(heard.map((notice) => notice.pid)).toEqual(Array.from({ length: 1000 }, (_, i) => 501 + i));
  notices.tell(started(2000));
  expect(heard.at(-1)).toEqual(started(2000));

  notices.down(() => true);
  notices.tell(started(2001));
  expect(heard.at(-1)).toEqual(started(2001));
  notices.down(send);
  notices.tell(started(2002));
  expect(heard.at(-1)).toEqual(started(2001));
  notices.up(send);
  expect(heard.at(-1)).toEqual(started(2002));
});

test('what could not be sent is kept', () => {
  const notices = new ControlNotices();
  notices.up(() => false);
  notices.tell(started(1));
  const heard: PartNotice[] = [];
  notices.up((notice) => heard.push(notice) > 0);
  expect(heard).toEqual([started(1)]);
});
