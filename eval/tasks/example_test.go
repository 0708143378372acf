package tasks_test

import (
	"fmt"

	"ggforge/eval/tasks"
)

func ExampleRead() {
	file := "The sky is\n1\nloud.\nblue.\na fish.\nsquare.\n"
	list, err := tasks.Read(tasks.HellaSwag, "file", []byte(file), false, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q %q %v\n", list[0].Before, list[0].Answers, list[0].Right)
	// Output:
	// "The sky is" ["loud." "blue." "a fish." "square."] [false true false false]
}
