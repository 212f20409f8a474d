// The notice in the place of a part of the page that cannot be shown: why, and a way to try again. All else of the page goes on.

import { Component, type ComponentChildren } from "preact";
import "./boundary.css";

interface Options {
  /** The name of the part, as the begin of a sentence. */
  readonly what: string;
  readonly children?: ComponentChildren;
}

interface Known {
  /** Why it cannot be shown; `null`: nothing is known against it. */
  readonly fault: string | null;
}

export class Boundary extends Component<Options, Known> {
  override state: Known = { fault: null };

  static override getDerivedStateFromError(error: unknown): Known {
    return { fault: error instanceof Error ? error.message : String(error) };
  }

  override componentDidCatch(error: unknown): void {
    // For developers.
    console.error(error);
  }

  override render(): ComponentChildren {
    const { what, children } = this.props;
    const { fault } = this.state;
    if (fault === null) {
      return children;
    }
    return (
      <p class="broken" role="alert">
        <span>
          {what} cannot be shown: {fault.replace(/[.!?]$/, "")}.
        </span>
        <button type="button" class="button" onClick={() => this.setState({ fault: null })}>
          Try again
        </button>
      </p>
    );
  }
}
