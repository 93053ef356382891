"""Images that kernels write and read as texels of four f32, within one run: attention's queries, keys and values.

A binding "name:width*height" says how many texels are needed. One image of a name serves every layer and prompt; a
larger one takes its place, and the old one is freed when nothing is bound to it any more. The binding "nearest" is the
sampler that reads the texel a coordinate lies in. Mirrored by static/gpu/images.js.
"""

import wgpu

from webgpu.dispatch import MAX_IMAGE, NEAREST

IMAGE_FORMAT = "rgba32float"
# How a binding is declared in a bind group's layout, by the manifest's word for it.
IMAGE_LAYOUTS = {
    "texels": {"texture": {"sample_type": "unfilterable-float"}},
    "nearest": {"sampler": {"type": "non-filtering"}},
    "write_texels": {"storage_texture": {"format": IMAGE_FORMAT, "access": "write-only"}},
}


class Images:
    """The images of one device; what is in them is left from whatever ran before."""

    def __init__(self, gpu: wgpu.GPUDevice) -> None:
        self.gpu = gpu
        self.by_name: dict[str, wgpu.GPUTexture] = {}
        self.nearest = gpu.create_sampler(label=NEAREST)

    def resource(self, target: str) -> wgpu.GPUTextureView | wgpu.GPUSampler:
        """What to bind for "name:width*height", an image of at least that size, or for "nearest"."""
        if target == NEAREST:
            return self.nearest
        name, _, size = target.partition(":")
        width, height = map(int, size.split("*"))
        image = self.by_name.get(name)
        if image is None or image.width < width or image.height < height:
            sides = (grown(width, image.width), grown(height, image.height)) if image else (width, height)
            usage = wgpu.TextureUsage.TEXTURE_BINDING | wgpu.TextureUsage.STORAGE_BINDING
            image = self.gpu.create_texture(label=name, size=(*sides, 1), format=IMAGE_FORMAT, usage=usage)
            self.by_name[name] = image
        return image.create_view()


def grown(needed: int, there: int) -> int:
    """A side of the image that replaces one: as it was, or at least twice that, so that few are made as texts grow."""
    return there if needed <= there else max(needed, min(2 * there, MAX_IMAGE))
