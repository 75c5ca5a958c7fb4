/**
 * A queue of asynchronous work: each piece starts after the previous one ended, even if it failed.
 */

/** Adds a piece of work to a queue. Resolves, or rejects, as the work does. */
export type WorkQueue = <T>(work: () => Promise<T>) => Promise<T>;

/** A new, empty queue. */
export function workQueue(): WorkQueue {
  let lastWork: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = lastWork.then(work);
    lastWork = turn.catch(() => undefined);
    return turn;
  };
}
