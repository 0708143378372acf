package hftest

import "slices"

// Tensor is a tensor of a checkpoint: its name and its dimensions there.
type Tensor struct {
	Name  string
	Shape []int64
}

// Example returns config.json and the tensors of a variant's checkpoint, those of ExtraFiles excluded, without making
// any values.
func (s *Spec) Example(v Variant) (config []byte, tensors []Tensor, err error) {
	cfg, err := s.config(v)
	if err != nil {
		return nil, nil, err
	}
	table, err := s.tensors(cfg)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range table {
		tensors = append(tensors, Tensor{t.name, slices.Clone(t.shape)})
	}
	return configJSON(cfg), tensors, nil
}
