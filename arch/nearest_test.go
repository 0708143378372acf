package arch

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	for class, want := range map[string]string{
		"llamaforcausallm":               "LLaMAForCausalLM LlamaForCausalLM",
		"LlamaForCasualLM":               "LLaMAForCausalLM LlamaForCausalLM",
		"llama":                          "LLaMAForCausalLM LlamaForCausalLM",
		"Gemma5ForConditionalGeneration": "Gemma3ForConditionalGeneration Gemma4ForConditionalGeneration",
		"DeepseekV9ForCausalLM":          "DeepseekV2ForCausalLM DeepseekV3ForCausalLM DeepseekV4ForCausalLM",
	} {
		if got := strings.Join(nearestClasses(class, Classes()), " "); got != want {
			t.Errorf("%s: %s, want %s", class, got, want)
		}
	}
}
