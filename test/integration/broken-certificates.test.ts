import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { backendOf, startArmature } from '../upstream/armature.ts';
import { startEngine } from '../upstream/engine.ts';
import { eventually } from '../upstream/waiting.ts';

it.each(['garbage', 'gone'])(
  'a backend whose certificate is %s when a worker starts costs its own callers an error, and nobody else',
  async (how) => {
    const folder = mkdtempSync(join(tmpdir(), 'armature-broken-'));
    try {
      const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
      const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
      execFileSync('openssl', [...kind, '-subj', '/CN=x', '-keyout', key, '-out', cert], { stdio: 'pipe' });
      await using engine = await startEngine();
      const secured = backendOf(`https://127.0.0.1:${engine.port}/v1`, {
        tls: { cert, key },
        probe: { off: true },
      });
      await using armature = await startArmature({
        backends: { secured, plain: backendOf(engine) },
        routes: { secured: { targets: [{ backend: 'secured' }] }, chat: { targets: [{ backend: 'plain' }] } },
      });
      if (how === 'gone') rmSync(cert);
      else writeFileSync(cert, 'half of a certifi');
      const dead = armature.kill('gateway-0');
      await eventually(
        'another worker',
        () => armature.parts().some((one) => one.part === 'gateway-0' && one.pid !== dead),
        10_000,
      );
      await armature.ready();
      const pid = armature.pid('gateway-0');
      for (let i = 0; i < 3; i++) {
        const refused = await armature.chat({ model: 'secured' });
        expect([refused.status, refused.error?.code]).toEqual([502, 'backend_unavailable']);
        expect((await armature.chat()).status).toBe(200);
      }
      expect(armature.pid('gateway-0')).toBe(pid);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
