/** A way from a vector to a few numbers, fitted once and then frozen. */
export interface Projection {
  centre: number[];
  /** What each member is divided by, squared. */
  variances: number[];
  /** The directions of the greatest variance, of length 1. */
  directions: number[][];
}

/** Numbers that a projection gives: along each direction, and how far from the centre. */
const NUMBERS = 3;
const DIRECTIONS = NUMBERS - 1;
/** Rounds in which the strongest direction is found; what is left of others then falls short of what matters here. */
const ROUNDS = 60;

/** Sums that a projection is fitted by. */
export class Moments {
  rows = 0;
  sums: number[];
  /** Row-major. */
  products: number[];

  constructor(length: number) {
    this.sums = Array.from({ length }, () => 0);
    this.products = Array.from({ length: length * length }, () => 0);
  }

  add(vector: readonly number[]): void {
    const { length } = this.sums;
    this.rows++;
    for (let i = 0; i < length; i++) {
      this.sums[i]! += vector[i]!;
      for (let j = 0; j < length; j++) this.products[i * length + j]! += vector[i]! * vector[j]!;
    }
  }

  /** Principal directions by the power method, each taken out of the covariance before the next is looked for. */
  fit(): Projection {
    const { length } = this.sums;
    const centre = this.sums.map((sum) => sum / this.rows);
    const covariance = this.products.map(
      (product, at) => product / this.rows - centre[Math.floor(at / length)]! * centre[at % length]!,
    );
    const variances = centre.map((_, i) => Math.max(covariance[i * length + i]!, 1e-12));
    const directions: number[][] = [];
    for (let count = 0; count < Math.min(DIRECTIONS, length); count++) {
      const direction = strongest(covariance, length);
      directions.push(direction);
      const size = dot(direction, times(covariance, direction));
      for (let at = 0; at < covariance.length; at++)
        covariance[at]! -= size * direction[Math.floor(at / length)]! * direction[at % length]!;
    }
    return { centre, variances, directions };
  }
}

/** Along each direction, and last the squared distance from the centre, each member over its variance. */
export function project({ centre, variances, directions }: Projection, vector: readonly number[]): number[] {
  const off = centre.map((middle, i) => vector[i]! - middle);
  const distance = off.reduce((sum, each, i) => sum + (each * each) / variances[i]!, 0);
  return [...directions.map((direction) => dot(direction, off)), distance];
}

function strongest(covariance: readonly number[], length: number): number[] {
  let direction = Array.from({ length }, (_, i) => 1 + i / length); // no direction that a covariance would favour
  for (let round = 0; round < ROUNDS; round++) {
    const next = times(covariance, direction);
    const size = Math.sqrt(dot(next, next));
    if (size < 1e-12) break;
    direction = next.map((each) => each / size);
  }
  const size = Math.sqrt(dot(direction, direction));
  return direction.map((each) => each / size);
}

const times = (matrix: readonly number[], vector: readonly number[]) =>
  vector.map((_, i) => dot(matrix.slice(i * vector.length, (i + 1) * vector.length), vector));

const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, each, i) => sum + each * b[i]!, 0);
