// Asks analyses for all components that show them: the list of analyses, the jobs, and the known state of both.

import { ApiFault, type Client } from "../../api/client.ts";
import { Jobs } from "../../api/jobs.ts";
import { Shape, ShapeFault, parseJson } from "../../model/json.ts";
import { readAnalyses } from "../../model/jobs.ts";
import { NO_ANALYSES, withAsked } from "../../state/analyses.ts";
import { Store } from "../../state/store.ts";

export class Desk {
  readonly store = new Store(NO_ANALYSES);
  readonly jobs: Jobs;
  private readonly client: Client;
  private isAsking = false;

  constructor(client: Client) {
    this.client = client;
    this.jobs = new Jobs(client, (key, asked) => this.store.update((state) => withAsked(state, key, asked)));
  }

  /** Asks which analyses there are, unless that is known. */
  async open(): Promise<void> {
    if (this.isAsking || this.store.state.analyses !== null) {
      return;
    }
    this.isAsking = true;
    try {
      const analyses = readAnalyses(await this.client.json("analyses"));
      this.store.update((state) => ({ ...state, analyses, failure: null }));
    } catch (error) {
      if (!(error instanceof ApiFault || error instanceof ShapeFault)) {
        throw error;
      }
      const failure = { code: error instanceof ApiFault ? error.kind : "nonsense", message: error.message };
      this.store.update((state) => ({ ...state, failure }));
    } finally {
      this.isAsking = false;
    }
  }

  /** The server tells of jobs. Throws a `ShapeFault`. */
  hear(data: string): void {
    this.jobs.hear(new Shape(parseJson(data), "changes"));
  }
}
