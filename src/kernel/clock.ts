/** Where time comes from. The path and the policies take a Clock as an argument, so that tests and the simulator turn it by hand. */
export interface Clock {
  /** Milliseconds since the Unix epoch, for records people read. */
  wall(): number;
  /** Milliseconds that only ever grow, with fractions, for measuring. */
  mono(): number;
}

export const systemClock: Clock = {
  wall: () => Date.now(),
  mono: () => performance.now(),
};
