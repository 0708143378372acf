// Package diffusion has the architectures of image and video models: diffusion transformers and UNets, whose files other
// programs than llama.cpp load (ComfyUI, stable-diffusion.cpp, diffusers). Their tensors keep the names of the
// checkpoint, which may be longer than ggml's and have more dimensions.
//
// The package imports nothing but gguf, so that programs which only quantize can read its columns.
package diffusion
