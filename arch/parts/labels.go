package parts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// OutputLabels lists the labels of a classifier in the order of their ids.
func OutputLabels(c *config.View) (v gguf.Value, ok bool, err error) {
	labels, err := Labels(c)
	return gguf.Strings(labels), len(labels) > 0, err
}

// HasLabels is the condition that the model is a classifier with labels.
func HasLabels(l table.Layer) (bool, error) {
	labels, err := Labels(l.View)
	return len(labels) > 0, err
}

// Labels returns the labels of a classifier. Two labels with the transformers library's default names LABEL_0 and
// LABEL_1 are taken as none, because every config has them; any other number of default names counts.
func Labels(c *config.View) ([]string, error) {
	byNumber := c.Sub("id2label").Members()
	if byNumber == nil {
		n, ok, err := c.Int("num_labels")
		if err != nil || !ok || c.KnownType() == "" || n == 2 {
			return nil, err
		}
		if n < 0 || n > config.MaxBlocks {
			return nil, config.WrongType("num_labels", "a number of labels", n)
		}
		var labels []string
		for i := range n {
			labels = append(labels, fmt.Sprintf("LABEL_%d", i))
		}
		return labels, nil
	}
	if len(byNumber) == 2 && byNumber["0"] == "LABEL_0" {
		return nil, nil
	}
	numbers := slices.Collect(maps.Keys(byNumber))
	var err error
	slices.SortFunc(numbers, func(a, b string) int {
		x, err1 := strconv.ParseInt(a, 10, 64)
		y, err2 := strconv.ParseInt(b, 10, 64)
		if err1 != nil || err2 != nil {
			err = config.WrongType("id2label", "labels by number", cmp.Or(a, b))
		}
		return cmp.Compare(x, y)
	})
	var labels []string
	for _, n := range numbers {
		s, ok := byNumber[n].(string)
		if !ok {
			return nil, config.WrongType("id2label."+n, "a string", byNumber[n])
		}
		labels = append(labels, s)
	}
	return labels, err
}
