"""What the device refuses is told to whose work it was, and to nobody else: WebGPU itself names nobody.

Plan: a prompt, a question, a text and a read whose buffer the device refuses, each beside one of the same kind that is
right, in both orders; an upload; a buffer or an image without memory is not handed to the next who needs one.
"""

import pytest

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

SPOILED = """async (order) => {
  // Work by kind: what it is given, what it answers; the buffer that is gone in the refused one.
  const ids = Array.from({ length: 90 }, (_, i) => i + 7);
  const traces = [await model.run(ids), await model.run(ids)];
  traces[1].buffers.pooled = false; // of which one is gone below
  const all = async (tokens) => {
    const ids = [];
    for await (const { id } of tokens) ids.push(id);
    return ids;
  };
  const run = async () => {
    const trace = await model.run(ids);
    try { return [...await trace.logits(89)]; } finally { trace.destroy(); }
  };
  const works = {
    run: [run, "q.1"],
    text: [() => all(model.generate(ids, { maxTokens: 9 })), "logits"],
    window: [(i) => traces[i].pattern(1, 2).then((cells) => [...cells]), "window"],
    read: [(i) => traces[i].read("q", 1).then((row) => [...row]), null],
  };
  const { make } = Buffers.prototype;
  const answers = {};
  for (const [kind, [work, gone]] of Object.entries(works)) {
    const alone = await work(0);
    if (!gone) traces[1].buffers.get("q.1").destroy();
    const both = await Promise.allSettled(order.map((who) => {
      // the first buffers that are made from here on are this work's
      if (who && gone) Buffers.prototype.make = function (sizes) {
        make.call(this, sizes);
        if (!this.get(gone)) return;
        this.get(gone).destroy();
        Buffers.prototype.make = make;
      };
      return work(who);
    }));
    Buffers.prototype.make = make;
    answers[kind] = both.map(({ value, reason }) => {
      if (reason) return `${reason.name}: ${reason.message.slice(0, 25)}`;
      return JSON.stringify(value) === JSON.stringify(alone) ? "right" : "other numbers";
    });
  }
  for (const trace of traces) trace.destroy();
  return answers;
}"""


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["right first", "refused first"])
def test_refused_call_fails_its_own_work_alone(order, llama):
    told = {0: "right", 1: "KernelError: The device refused a call"}
    expected = [told[who] for who in order]
    assert llama.ask(SPOILED, order) == {"run": expected, "text": expected, "window": expected, "read": expected}


WITHOUT_MEMORY = """async () => {
  const { gpu } = model.kernels;
  const create = gpu.createBuffer;
  gpu.createBuffer = (given) => create.call(gpu, { ...given, usage: 0 }); // refused, and has its size
  const bytes = 4_000_016; // nobody else's size
  const work = async () => {
    const buffers = new Buffers(model.kernels, [["x", bytes]]);
    try {
      buffers.write({ x: Uint32Array.of(1, 2, 3, 4) });
      return [...new Uint32Array((await buffers.read([["x", 4]]))[0])];
    } catch (error) { return error.name; } finally { buffers.destroy(); }
  };
  const refused = await work();
  gpu.createBuffer = create;
  return [refused, await work()];
}"""


def test_buffer_that_the_device_did_not_make_is_not_handed_on(llama):
    assert llama.ask(WITHOUT_MEMORY) == ["KernelError", [1, 2, 3, 4]]


GIVEN_UP_WITHOUT_MEMORY = """async () => {
  const { gpu } = model.kernels;
  const create = gpu.createBuffer;
  gpu.createBuffer = (given) => create.call(gpu, { ...given, usage: 0 });
  const sizes = [["x", 5_000_016]]; // nobody else's size
  new Buffers(model.kernels, sizes).destroy(); // as what is cancelled does
  gpu.createBuffer = create;
  const seen = [];
  for (const wait of [0, 1]) {
    if (wait) await gpu.queue.onSubmittedWorkDone();
    const buffers = new Buffers(model.kernels, sizes);
    buffers.write({ x: Uint32Array.of(1, 2, 3, 4) });
    seen.push(await buffers.read([["x", 4]]).then(([x]) => [...new Uint32Array(x)], (error) => error.name));
    buffers.destroy();
  }
  const again = model.kernels.pool.take(5_000_016);
  model.kernels.pool.give(again);
  return [...seen, again instanceof GPUBuffer];
}"""


def test_buffer_of_work_given_up_is_handed_on_only_if_the_device_made_it(llama):
    assert llama.ask(GIVEN_UP_WITHOUT_MEMORY) == [[1, 2, 3, 4], [1, 2, 3, 4], True]


def test_refused_write_of_weights_fails_their_upload_alone(llama):
    script = """async () => {
      const { Model } = await import("/static/gpu/runtime.js");
      const { write } = model.kernels;
      let last = null;
      model.kernels.write = (target, view, start) => write.call(model.kernels, target, view, (last = target, start));
      const load = () => Model.load(device, raw).catch((error) => error);
      (await load()).destroy();
      const { label } = last;
      const beyond = (target, start) => (target.label === label ? 2 ** 28 : start);
      model.kernels.write = (target, view, start) => write.call(model.kernels, target, view, beyond(target, start));
      const refused = load();
      const beside = model.run([1, 2, 3]).then((trace) => trace.logits(2)).then(({ length }) => length);
      const found = [(await refused).name, await beside];
      delete model.kernels.write;
      return found;
    }"""
    assert llama.ask(script) == ["KernelError", 321]


IMAGE_REFUSED = """async () => {
  const { gpu, images } = model.kernels;
  const create = gpu.createTexture;
  const { choice, warmed } = model;
  Object.assign(model, { choice: { ...choice, attention: "texels" }, warmed: true });
  const logits = async () => {
    const trace = await model.run(Array.from({ length: 90 }, (_, i) => i + 7));
    try { return (await trace.logits(89)).join(); } finally { trace.destroy(); }
  };
  const right = await logits();
  images.byName.clear();
  gpu.createTexture = (given) => create.call(gpu, { ...given, size: [9000, 9000] }); // beyond every device's default
  const told = await logits().catch((error) => error.name);
  gpu.createTexture = create;
  const answer = [told, images.byName.size, (await logits()) === right, images.byName.size];
  Object.assign(model, { choice, warmed });
  return answer;
}"""


def test_image_that_the_device_did_not_make_is_not_handed_on(llama):
    assert llama.ask(IMAGE_REFUSED) == ["KernelError", 0, True, 3]
