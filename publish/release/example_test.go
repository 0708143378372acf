package release_test

import (
	"fmt"
	"strings"

	"ggforge/publish/release"
)

func Example() {
	p, err := release.Parse("plan.yaml",
		[]byte("source: models/Gollama\noutput: out\noutputs: [Q8_0, {type: Q4_K_M, like: Q4_0}]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Source, len(p.Outputs), p.Outputs[1].Like)

	_, err = release.Parse("plan.yaml",
		[]byte("source: models/Gollama\noutputs: [Q8_0]\nevaluation:\n  txt: wiki.txt\n"))
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", ";\n"))
	// Output:
	// models/Gollama 2 Q4_0
	// plan.yaml, line 4: unknown key "evaluation.txt", did you mean text?;
	// the keys of evaluation are text, chunk, chunks
}
