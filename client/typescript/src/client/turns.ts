/** Work that is done one piece after another, whatever came of those before. */

/** What does a piece of work in its turn, and says what came of it. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

/** A row of its own, in which nobody stands yet. */
export function turns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work);
    last = turn.catch(() => undefined);
    return turn;
  };
}
