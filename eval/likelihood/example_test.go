package likelihood_test

import (
	"fmt"
	"strings"

	"ggforge/eval/likelihood"
)

func ExampleRead() {
	file := `{"context": "The sky is", "continuation": " blue"}
{"prompt": "The sky is", "choices": [" blue", " a fish"], "id": "sky"}`
	list, err := likelihood.Read("file", strings.NewReader(file))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range list {
		fmt.Println(r.Line, r.ID, len(r.Continuations))
	}
	// Output:
	// 1 <nil> 1
	// 2 sky 2
}
