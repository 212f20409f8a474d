// The button that saves an image of the timeline.

import type { JSX, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { saveImage, type ImageForm } from "./image.ts";
import "./image-menu.css";
import type { Page } from "./page.ts";

export function ImageMenu({ page }: { readonly page: Page }): JSX.Element {
  const menu = useRef<HTMLDetailsElement>(null);
  useLeaving(menu);
  const save = (form: ImageForm): void => {
    void saveImage(page, form);
    closed(menu.current);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && menu.current?.open === true) {
      event.preventDefault();
      event.stopPropagation();
      closed(menu.current);
    }
  };
  return (
    <details class="image-menu" ref={menu} onKeyDown={press}>
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

/** Closes the menu; the focus is on its button then, which opened it. */
function closed(menu: HTMLDetailsElement | null): void {
  menu?.removeAttribute("open");
  menu?.querySelector("summary")?.focus();
}

/** A click or a move of the focus elsewhere closes the menu. It is watched also while the menu is closed: who opens it and leaves it at once is faster than a
 * drawing that says it is open. */
function useLeaving(menu: RefObject<HTMLDetailsElement | null>): void {
  useEffect(() => {
    const leave = (event: Event): void => {
      if (event.target instanceof Node && menu.current?.contains(event.target) === false) {
        menu.current.removeAttribute("open");
      }
    };
    const names = ["pointerdown", "focusin"];
    names.forEach((name) => document.addEventListener(name, leave, true));
    return () => names.forEach((name) => document.removeEventListener(name, leave, true));
  }, [menu]);
}
