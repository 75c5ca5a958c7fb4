/** A shuffler that is none: it takes what it is sent, and can be told to fail. */
import type { Transport } from "../client/transport.js";
import { TryAgain } from "../errors.js";
import { concatenated } from "../mechanisms/packing.js";
import { bytesField, fieldsOf } from "../transport/protobuf.js";
import { TYPE, type Answer } from "../transport/submission.js";

/** Answers as a shuffler does. failing: throw TryAgain with this reason instead. */
export class FakeShuffler implements Transport {
  /** Every submission that was taken. */
  readonly taken: Uint8Array[] = [];
  failing: string | null = null;
  /** What to answer instead of acknowledging. */
  answer: Answer | null = null;
  /** An operator's notice, signed, which every answer carries. */
  notice: Uint8Array = new Uint8Array();
  /** The state of models, signed, in answers to submissions without a report. */
  models: Uint8Array = new Uint8Array();

  /** How many reports were taken. */
  get reports(): number {
    return this.taken.reduce((sum, request) => sum + [...fieldsOf(request)].length, 0);
  }

  post(body: Uint8Array): Promise<Answer> {
    if (this.failing !== null) return Promise.reject(new TryAgain(this.failing));
    if (this.answer) return Promise.resolve(this.answer);
    this.taken.push(body);
    const headers = { "content-type": TYPE };
    return Promise.resolve({
      status: 200,
      headers,
      body: concatenated(
        bytesField(2, this.notice),
        body.length ? new Uint8Array() : bytesField(3, this.models),
      ),
    });
  }
}
