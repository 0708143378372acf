package runs

import (
	"regexp"
	"strings"

	"ggforge/quantize"
)

// publishedTypes matches publishers' names of types that are not recipes, with a text about the replacement. The
// first match counts; $1 in a text is the first group.
var publishedTypes = []struct {
	name *regexp.Regexp
	use  string
}{
	{regexp.MustCompile(`^ud[-_](.+)$`),
		"its types were chosen tensor by tensor for one model; --calibrate TEXT --like $1 chooses those that lose " +
			"the least at that size"},
	{regexp.MustCompile(`^q3_k_xl$`), "it is Q3_K_L with --output-tensor-type Q8_0 --token-embedding-type Q8_0"},
	{regexp.MustCompile(`^q([26])_k_x?l$`), "it is Q$1_K with --output-tensor-type Q8_0 --token-embedding-type Q8_0"},
	{regexp.MustCompile(`^q([45])_k_x?l$`), "it is Q$1_K_M with --output-tensor-type Q8_0 --token-embedding-type Q8_0"},
	{regexp.MustCompile(`^q6_k_[sm]$`), "want Q6_K, which has no variants"},
	{regexp.MustCompile(`^q8_k(_.*)?$`), "want Q8_0"},
	{regexp.MustCompile(`^(?:(?:u?int|q|w)[-_]?([1-8])(?:a16|a8)?|([1-8])[-_]?bits?)$`), "bits"},
	{regexp.MustCompile(`^(?:nf4|gptq|awq|bnb|exl[23])$`),
		"it is a format of checkpoints, which ggquant reads; Q4_K_M has about the same size"},
	{regexp.MustCompile(`^fp4$`), "want NVFP4 or MXFP4"},
	{regexp.MustCompile(`^(?:fp8|f8|float8)(?:[-_].*)?$`), "GGUF has no such type; Q8_0 has about the same size"},
	{regexp.MustCompile(`^(?:fp16|float16|half|16[-_]?bits?)$`), "want F16"},
	{regexp.MustCompile(`^(?:bfloat16|brain16|fp16b)$`), "want BF16"},
	{regexp.MustCompile(`^(?:fp32|float32|float|full|32[-_]?bits?)$`), "want F32"},
}

// recipesOfBits has the recipes to suggest, by bits per weight.
var recipesOfBits = map[string]string{
	"1": "IQ1_M (needs an importance matrix)", "2": "IQ2_M (needs an importance matrix) or Q2_K",
	"3": "Q3_K_M or IQ3_M",
	"4": "Q4_K_M, or IQ4_XS, which is smaller", "5": "Q5_K_M", "6": "Q6_K", "7": "Q6_K or Q8_0", "8": "Q8_0",
}

// PublishedTypeHint returns the replacement for a publishers' type name that is not a recipe, for the end of an
// error; "" for any other name.
func PublishedTypeHint(name string) string {
	if _, ok := quantize.LookupRecipe(name); ok || len(name) > 40 {
		return ""
	}
	for _, p := range publishedTypes {
		m := p.name.FindStringSubmatch(strings.ToLower(name))
		if m == nil {
			continue
		}
		if p.use == "bits" {
			return "want " + recipesOfBits[m[1]+m[2]]
		}
		if len(m) > 1 && strings.Contains(p.use, "$1") {
			base := strings.ToUpper(m[1])
			if strings.HasPrefix(p.use, "its types") {
				base = sizeOf(base)
			}
			return strings.ReplaceAll(p.use, "$1", base)
		}
		return p.use
	}
	return ""
}

// sizeOf returns the recipe closest in size to a publishers' name: Q4_K_M for Q4_K_XL.
func sizeOf(name string) string {
	if _, ok := quantize.LookupRecipe(name); ok {
		return name
	}
	stem := name
	for strings.Contains(stem, "_") {
		stem = stem[:strings.LastIndexByte(stem, '_')]
		for _, end := range []string{"", "_M", "_S", "_0"} {
			if r, ok := quantize.LookupRecipe(stem + end); ok {
				return r.Name
			}
		}
	}
	return "Q4_K_M"
}
