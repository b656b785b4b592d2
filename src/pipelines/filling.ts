import type { Filling, StageValue } from './kinds/contracts.ts';
import type { PipelinePlan } from './plan.ts';
import type { TemplateScope } from './templates.ts';

/** What the templates of one request's stages stand for. Nothing of it is ever read as a template. */
export class RequestScope implements TemplateScope {
  /** By stage; those that have ended. */
  readonly stages: Record<string, StageValue> = Object.create(null);
  readonly #request: unknown;
  readonly #session: unknown;

  constructor(request: unknown, session: unknown) {
    this.#request = request;
    this.#session = session;
  }

  get(name: string): unknown {
    if (name === 'request') return this.#request;
    if (name === 'session') return this.#session;
    return name === 'stages' ? this.stages : this.stages[name]?.text;
  }
}

/** What one stage is filled with; `more` are names that only it has, such as `item`. */
export class StageFilling implements Filling, TemplateScope {
  readonly #plan: PipelinePlan;
  readonly #scope: RequestScope;
  readonly #more: Readonly<Record<string, unknown>> | undefined;

  constructor(plan: PipelinePlan, scope: RequestScope, more?: Readonly<Record<string, unknown>>) {
    this.#plan = plan;
    this.#scope = scope;
    this.#more = more;
  }

  get(name: string): unknown {
    return this.#more && Object.hasOwn(this.#more, name) ? this.#more[name] : this.#scope.get(name);
  }

  text(template: string): string {
    return this.#plan.template(template).render(this);
  }

  value(expression: string): unknown {
    return this.#plan.expression(expression).value(this);
  }

  /** Throws where it cannot be told. */
  holds(expression: string): boolean {
    return this.#plan.expression(expression).holds(this);
  }

  isCallers(expression: string): boolean {
    return this.#plan.expression(expression).roots.every((root) => root === 'request');
  }

  stage(name: string): StageValue | undefined {
    return this.#scope.stages[name];
  }

  /** The same with further names. */
  with(more: Readonly<Record<string, unknown>>): StageFilling {
    return new StageFilling(this.#plan, this.#scope, more);
  }
}
