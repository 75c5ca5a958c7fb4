/** A fake shuffler: it records submissions, and can be set to fail. */
import type { Transport } from "../client/transport.js";
import { TryAgain } from "../errors.js";
import { concatenated } from "../mechanisms/packing.js";
import { bytesField, fieldsOf } from "../transport/protobuf.js";
import { TYPE, type Answer } from "../transport/submission.js";

/** Answers like a shuffler. failing: a reason; if set, every call throws TryAgain with it. */
export class FakeShuffler implements Transport {
  /** The accepted submissions, in order. */
  readonly requests: Uint8Array[] = [];
  failing: string | null = null;
  /** The answer to give instead of an acknowledgement. */
  answer: Answer | null = null;
  /** A signed notice that every answer carries. */
  notice: Uint8Array = new Uint8Array();
  /** The signed state of models, sent in answers to submissions without a report. */
  models: Uint8Array = new Uint8Array();

  /** The number of accepted reports. */
  get reports(): number {
    return this.requests.reduce((sum, request) => sum + [...fieldsOf(request)].length, 0);
  }

  post(body: Uint8Array): Promise<Answer> {
    if (this.failing !== null) return Promise.reject(new TryAgain(this.failing));
    if (this.answer) return Promise.resolve(this.answer);
    this.requests.push(body);
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
