import type { Filling, StageValue } from './kinds/contracts.ts';
import type { PipelinePlan, PlannedStage } from './plan.ts';
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
    return name === 'session' ? this.#session : this.stages[name]?.text;
  }

  /** The stages that `stage` comes after; all of them have ended when it begins. */
  seenBy({ sees }: PlannedStage): Readonly<Record<string, StageValue>> {
    const seen: Record<string, StageValue> = Object.create(null);
    for (const name of sees) {
      const value = this.stages[name];
      if (value) seen[name] = value;
    }
    return seen;
  }
}

/**
 * What one stage is filled with; `more` are names that only it has, such as `item`. Of the others it sees those that it comes
 * after, whoever else may have ended by then.
 */
export class StageFilling implements Filling, TemplateScope {
  readonly #plan: PipelinePlan;
  readonly #scope: RequestScope;
  readonly #stage: PlannedStage;
  readonly #more: Readonly<Record<string, unknown>> | undefined;
  #stages: Readonly<Record<string, StageValue>> | undefined;

  constructor(
    plan: PipelinePlan,
    scope: RequestScope,
    stage: PlannedStage,
    more?: Readonly<Record<string, unknown>>,
  ) {
    this.#plan = plan;
    this.#scope = scope;
    this.#stage = stage;
    this.#more = more;
  }

  get(name: string): unknown {
    if (this.#more && Object.hasOwn(this.#more, name)) return this.#more[name];
    return name === 'stages' ? this.#seen() : this.#scope.get(name);
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
    const filling = new StageFilling(this.#plan, this.#scope, this.#stage, more);
    filling.#stages = this.#seen();
    return filling;
  }

  #seen(): Readonly<Record<string, StageValue>> {
    this.#stages ??= this.#scope.seenBy(this.#stage);
    return this.#stages;
  }
}
