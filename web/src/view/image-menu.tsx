// The button that saves an image of the timeline.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { saveImage, type ImageForm } from "./image.ts";
import "./image-menu.css";
import type { Page } from "./page.ts";

export function ImageMenu({ page }: { readonly page: Page }): JSX.Element {
  const menu = useRef<HTMLDetailsElement>(null);
  const save = (form: ImageForm): void => {
    void saveImage(page, form);
    menu.current?.removeAttribute("open");
  };
  return (
    <details class="image-menu" ref={menu}>
      <summary class="button" title="Save an image of the timeline">
        Image
      </summary>
      <div class="image-forms">
        <button type="button" class="button" title="As it is on the screen (Ctrl+Shift+S)" onClick={() => save("png")}>
          PNG
        </button>
        <button type="button" class="button" title="Can be made larger, and changed" onClick={() => save("svg")}>
          SVG
        </button>
      </div>
    </details>
  );
}
