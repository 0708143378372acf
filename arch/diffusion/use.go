package diffusion

import (
	"slices"
	"strings"
)

// Use is what a program needs besides the file of a model. Sources: the documents of stable-diffusion.cpp at 97d2990, the
// text encoders that the pipelines of diffusers 58eb52c name, and that library's SINGLE_FILE_LOADABLE_CLASSES.
type Use struct {
	Tag      string // the hub's pipeline tag
	Encoders string // text encoders
	VAE      string // its usual file
	SD       string // flags of stable-diffusion.cpp for both; "" if it does not load the file
	Class    string // of diffusers, for from_single_file; "" if it has none
}

// use is a row: for models of an architecture whose names have one of the words, in lower case; none is all others.
type use struct {
	arch  string
	words []string
	Use
}

const (
	sdCLIPT5 = "--vae ae.safetensors --clip_l clip_l.safetensors --t5xxl t5xxl-Q8_0.gguf"
	sdWan    = "-M vid_gen --vae wan_2.1_vae.safetensors --t5xxl umt5-xxl-Q8_0.gguf"
	sdQwen   = "--vae qwen_image_vae.safetensors --llm Qwen2.5-VL-7B-Instruct-Q8_0.gguf"

	textToImage  = "text-to-image"
	imageToImage = "image-to-image"
	textToVideo  = "text-to-video"
	imageToVideo = "image-to-video"

	clipT5 = "CLIP-L and T5 v1.1 XXL"
)

// uses, more specific rows first. Every architecture has a row for all names.
var uses = []use{
	{"flux", []string{"flux.2", "flux2", "flux-2"}, Use{imageToImage, "Mistral Small 3 (dev) or Qwen3 (klein)",
		"flux2_ae.safetensors", "--vae flux2_ae.safetensors --llm Mistral-Small-3.2-24B-Instruct-2506-Q4_K_M.gguf",
		"Flux2Transformer2DModel"}},
	{"flux", []string{"chroma"}, Use{textToImage, "T5 v1.1 XXL", "ae.safetensors",
		"--vae ae.safetensors --t5xxl t5xxl-Q8_0.gguf", "ChromaTransformer2DModel"}},
	{"flux", []string{"longcat"}, Use{textToImage, "Qwen2.5-VL 7B", "ae.safetensors",
		"--vae ae.safetensors --llm Qwen2.5-VL-7B-Instruct-Q8_0.gguf", ""}},
	{"flux", []string{"kontext", "fill", "canny", "depth", "redux", "inpaint"}, Use{imageToImage, clipT5,
		"ae.safetensors", sdCLIPT5, "FluxTransformer2DModel"}},
	{"flux", nil, Use{textToImage, clipT5, "ae.safetensors", sdCLIPT5, "FluxTransformer2DModel"}},
	{"sd3", nil, Use{textToImage, "CLIP-L, CLIP-G and T5 v1.1 XXL", "the one of the original model",
		"--vae sd3_vae.safetensors --clip_l clip_l.safetensors --clip_g clip_g.safetensors --t5xxl t5xxl-Q8_0.gguf",
		"SD3Transformer2DModel"}},
	{"aura", nil, Use{textToImage, "Pile-T5 XL", "the one of SDXL", "", "AuraFlowTransformer2DModel"}},
	{"hidream", []string{"-e1"}, Use{imageToImage, "CLIP-L, CLIP-G, T5 v1.1 XXL and Llama 3.1 8B", "ae.safetensors", "",
		"HiDreamImageTransformer2DModel"}},
	{"hidream", nil, Use{textToImage, "CLIP-L, CLIP-G, T5 v1.1 XXL and Llama 3.1 8B", "ae.safetensors", "",
		"HiDreamImageTransformer2DModel"}},
	{"cosmos", []string{"anima"}, Use{textToImage, "Qwen3 0.6B", "qwen_image_vae.safetensors",
		"--vae qwen_image_vae.safetensors --llm Qwen3-0.6B-Base-Q8_0.gguf", ""}},
	{"cosmos", []string{"video2world"}, Use{imageToVideo, "T5 v1.0 11B", "wan_2.1_vae.safetensors", "",
		"CosmosTransformer3DModel"}},
	{"cosmos", nil, Use{textToImage, "T5 v1.0 11B", "wan_2.1_vae.safetensors", "", "CosmosTransformer3DModel"}},
	{"qwen_image", []string{"edit", "layered"}, Use{imageToImage, "Qwen2.5-VL 7B with its mmproj file",
		"qwen_image_vae.safetensors", sdQwen + " --llm_vision mmproj-Qwen2.5-VL-7B-Instruct-F16.gguf",
		"QwenImageTransformer2DModel"}},
	{"qwen_image", nil, Use{textToImage, "Qwen2.5-VL 7B", "qwen_image_vae.safetensors", sdQwen,
		"QwenImageTransformer2DModel"}},
	{"ltxv", []string{"ltx-2", "ltx2"}, Use{imageToVideo, "Gemma 3 12B", "the one of the original model", "",
		"LTX2VideoTransformer3DModel"}},
	{"ltxv", nil, Use{imageToVideo, "T5 v1.1 XXL", "the one of the original model", "", "LTXVideoTransformer3DModel"}},
	{"hyvid", []string{"hunyuanimage", "hunyuan-image"}, Use{textToImage, "Qwen2.5-VL 7B and ByT5 small",
		"the one of the original model", "", ""}},
	{"hyvid", []string{"1.5", "15"}, Use{textToVideo, "Qwen2.5-VL 7B and ByT5 small", "the one of the original model", "", ""}},
	{"hyvid", []string{"i2v"}, Use{imageToVideo, "CLIP-L and Llava-Llama-3 8B", "hunyuan_video_vae_bf16.safetensors", "",
		"HunyuanVideoTransformer3DModel"}},
	{"hyvid", nil, Use{textToVideo, "CLIP-L and Llava-Llama-3 8B", "hunyuan_video_vae_bf16.safetensors", "",
		"HunyuanVideoTransformer3DModel"}},
	{"wan", []string{"vace"}, Use{textToVideo, "UMT5 XXL", "wan_2.1_vae.safetensors", sdWan, "WanVACETransformer3DModel"}},
	{"wan", []string{"animate"}, Use{imageToVideo, "UMT5 XXL", "wan_2.1_vae.safetensors", "",
		"WanAnimateTransformer3DModel"}},
	{"wan", []string{"ti2v"}, Use{imageToVideo, "UMT5 XXL", "wan2.2_vae.safetensors",
		strings.Replace(sdWan, "wan_2.1", "wan2.2", 1), "WanTransformer3DModel"}},
	{"wan", []string{"i2v", "flf2v", "s2v", "camera", "fun"}, Use{imageToVideo, "UMT5 XXL", "wan_2.1_vae.safetensors",
		sdWan, "WanTransformer3DModel"}},
	{"wan", nil, Use{textToVideo, "UMT5 XXL", "wan_2.1_vae.safetensors", sdWan, "WanTransformer3DModel"}},
	// stable-diffusion.cpp does not read the shapes of reshaped tensors
	{"sdxl", nil, Use{textToImage, "CLIP-L and CLIP-G", "sdxl_vae.safetensors", "", ""}},
	{"sd1", nil, Use{textToImage, "CLIP-L", "the one of the original model", "", ""}},
	{"lumina2", []string{"z-image", "z_image", "zimage"}, Use{textToImage, "Qwen3 4B", "ae.safetensors",
		"--vae ae.safetensors --llm Qwen3-4B-Q8_0.gguf", "ZImageTransformer2DModel"}},
	{"lumina2", nil, Use{textToImage, "Gemma 2 2B", "ae.safetensors", "", "Lumina2Transformer2DModel"}},
	{"ideogram4", nil, Use{Tag: textToImage}},
	{"minimax_h3", nil, Use{Tag: textToVideo}},
	{"mochi", nil, Use{Tag: textToVideo}},
}

// UseOf returns what programs need for a model of an architecture of this package. name is what is known of its name, such
// as that of the base model on the hub and those of the files; models of one architecture are told apart by it.
func UseOf(arch, name string) Use {
	name = strings.ToLower(name)
	for _, u := range uses {
		if u.arch == arch && (u.words == nil || slices.ContainsFunc(u.words,
			func(w string) bool { return strings.Contains(name, w) })) {
			return u.Use
		}
	}
	return Use{}
}
