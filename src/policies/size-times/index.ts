/** It is a mean of so many answers, or of so many for each that is in flight where that is more. */
const ANSWERS_MIN = 256;
const ANSWERS_PER_PLACE = 64;
/** Keeps the equations solvable where all answers are of one size. */
const RIDGE = 1e-4;

/**
 * What whole answers take by their sizes: `a + b out + c in`, fitted to those of late by least squares of the relative
 * error, so that answers of any size can be compared.
 */
export class SizeTimes {
  // Sums of the products of what is fitted: 1/t, out/t and in/t, with each other and with 1.
  #aa = 0;
  #ab = 0;
  #ac = 0;
  #bb = 0;
  #bc = 0;
  #cc = 0;
  #a1 = 0;
  #b1 = 0;
  #c1 = 0;

  /**
   * What an answer of that size takes, in the unit of `time`, after this one has been taken in. Those that are in flight
   * together must not move what they are compared by: `inFlight`, how many they are.
   */
  observe(time: number, sizeIn: number, sizeOut: number, inFlight: number): number {
    const kept = 1 - 1 / Math.max(ANSWERS_MIN, ANSWERS_PER_PLACE * inFlight);
    const a = 1 / time;
    const b = sizeOut / time;
    const c = sizeIn / time;
    this.#aa = kept * this.#aa + a * a;
    this.#ab = kept * this.#ab + a * b;
    this.#ac = kept * this.#ac + a * c;
    this.#bb = kept * this.#bb + b * b;
    this.#bc = kept * this.#bc + b * c;
    this.#cc = kept * this.#cc + c * c;
    this.#a1 = kept * this.#a1 + a;
    this.#b1 = kept * this.#b1 + b;
    this.#c1 = kept * this.#c1 + c;
    return this.#solve(sizeIn, sizeOut);
  }

  #solve(sizeIn: number, sizeOut: number): number {
    // Gauss, with a ridge in proportion to each diagonal.
    const aa = this.#aa * (1 + RIDGE);
    const bb = this.#bb * (1 + RIDGE);
    const cc = this.#cc * (1 + RIDGE) + Number.MIN_VALUE;
    const ba = this.#ab / aa;
    const ca = this.#ac / aa;
    const bb2 = bb - ba * this.#ab;
    const bc2 = this.#bc - ba * this.#ac;
    const b2 = this.#b1 - ba * this.#a1;
    const cb = bb2 > 0 ? bc2 / bb2 : 0;
    const cc2 = cc - ca * this.#ac - cb * bc2;
    const c = cc2 > 0 ? (this.#c1 - ca * this.#a1 - cb * b2) / cc2 : 0;
    const b = bb2 > 0 ? (b2 - bc2 * c) / bb2 : 0;
    const a = (this.#a1 - this.#ab * b - this.#ac * c) / aa;
    return a + b * sizeOut + c * sizeIn;
  }
}
