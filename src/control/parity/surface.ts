import type { CertificateView, ParityMatrix, ParitySurface } from '../../api/contracts.ts';
import { inWords } from '../../events/words.ts';
import { pageAfter } from '../../kernel/page-after.ts';
import type { Certificate } from '../../releases/parity/contracts.ts';
import { countingOf } from './certificates.ts';
import type { ParityService } from './service.ts';

/** What the management API shows and does about parity. */
export function paritySurface(service: ParityService): ParitySurface {
  const { certificates } = service;
  return {
    parities(asked) {
      const page = pageAfter(certificates.all, ({ id }) => id, asked);
      return page && { ...page, data: page.data.map(viewOf) };
    },
    parity(id) {
      const found = certificates.get(id);
      return found && viewOf(found);
    },
    parityMatrix: () => matrixOf(certificates.all),
    startParity: async (request, actor) => viewOf(await service.start(request, actor)),
    stopParity: (id) => service.stop(id),
  };
}

function viewOf(certificate: Certificate): CertificateView {
  const { reason, figures, flipsMax } = certificate;
  const words = reason === undefined ? {} : { words: inWords(reason, { ...figures, flipsMax }) };
  return { ...certificate, ...words } as CertificateView;
}

/** `all`: newest first. */
function matrixOf(all: readonly Certificate[]): ParityMatrix {
  const pairs = Map.groupBy(all, ({ reference, backend }) => `${reference}\n${backend}`);
  const cells = [...pairs.values()].map(cellOf);
  const backends = new Set(cells.flatMap(({ reference, backend }) => [reference, backend]));
  return { backends: [...backends].sort(), cells };
}

/** `comparisons`: all of one pair, newest first; at least one. */
function cellOf(comparisons: readonly Certificate[]): ParityMatrix['cells'][number] {
  const newest = comparisons[0]!;
  const each = countingOf(comparisons)!;
  return {
    reference: each.reference,
    backend: each.backend,
    certificate: each.id,
    standing: each.state === 'running' ? 'running' : each.expired ? 'expired' : (each.verdict ?? 'undecided'),
    golden: each.golden.name,
    flipsMax: each.flipsMax,
    prompts: each.figures.prompts,
    flips: each.figures.flips,
    floorFlips: each.figures.floorFlips,
    flipsAtMost: each.figures.flipsAtMost,
    at: each.endedAt ?? each.at,
    ...(newest !== each && { newer: newerOf(newest) }),
  };
}

function newerOf({ id, state, reason, endedAt, at }: Certificate) {
  return { certificate: id, state, ...(reason !== undefined && { reason }), at: endedAt ?? at };
}
