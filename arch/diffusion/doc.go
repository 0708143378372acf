// Package diffusion has the architectures of image and video models: how the names of its tensors show which one a
// checkpoint has, which tensors keep which precision, and what loaders want to know of a file.
//
// Other programs than llama.cpp load the files: ComfyUI, stable-diffusion.cpp, diffusers. Names may be longer than ggml's,
// and tensors have up to 5 dimensions (gguf.LimitsOf).
//
// These models have no config.json, and their GGUF files have no keys about sizes: a checkpoint is one state dict,
// its tensors keep their names, and a loader finds the model by names and shapes. So an architecture is one row of
// names:
//
//	names of a checkpoint ── Strip ──► names of the diffusion model ── Detect ──► *Model
//	                                                                                │
//	conversion    which tensors are F32 (F32), left out (Ignored), in rows of 256 (Reshape), of 5 dimensions (FiveDims)
//	quantization  which tensors stay as they are (Keep), and with how many dimensions (Dims)
//
// The diffusers library has names of its own for most models, and cuts tensors in other places. A [Layout] is the table
// that leads back to the original names.
//
// Rows with Reference are those of tools/convert.py and tools/lcpp.patch of city96/ComfyUI-GGUF, branch
// auto_convert at 4dfc025, in its order of detection; what others add comes after them, so that no checkpoint
// which that converter knows is taken for another architecture.
//
// The package imports no other table, so that programs which only quantize can read its columns.
package diffusion
