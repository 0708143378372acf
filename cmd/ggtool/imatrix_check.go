package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/imatrix"
)

// matrixCheck is the JSON output.
type matrixCheck struct {
	File     string          `json:"file"`
	Model    string          `json:"model"`
	Right    int             `json:"right"`   // tensors with matching entries
	Tensors  int             `json:"tensors"` // of the model
	Fits     bool            `json:"fits"`
	Findings []matrixFinding `json:"findings"`
}

// matrixFinding is a finding about a tensor.
type matrixFinding struct {
	Tensor string `json:"tensor"`
	Text   string `json:"text"`
	Broken bool   `json:"broken"`
}

func checkMatrix(ctx context.Context, cmd *cli.Command) error {
	r, err := parseRead(cmd)
	if err != nil {
		return err
	}
	model, err := weights(r.Model)
	if err != nil {
		return err
	}
	m, err := imatrix.Open(r.In[0])
	if err != nil {
		return err
	}
	defer m.Close()
	check := matrixCheck{File: r.In[0], Model: r.Model, Tensors: len(model), Findings: []matrixFinding{}}
	add := func(tensor string, broken bool, format string, args ...any) {
		check.Findings = append(check.Findings, matrixFinding{tensor, fmt.Sprintf(format, args...), broken})
	}
	of, bad := map[string]bool{}, 0
	for _, x := range model {
		of[x.Name] = true
		e := m.Entry(x.Name)
		if e == nil {
			add(x.Name, false, "the matrix has no entry for it")
			continue
		}
		_, warning, err := m.Lookup(x.Name, []int64{int64(x.Columns), 1, int64(x.Matrices)})
		if err = errors.Join(err, warning); err != nil {
			add(x.Name, true, "%v", err)
			bad++
			continue
		}
		if n := len(e.Unseen()); n > 0 {
			add(x.Name, false, "no token has used %d of %d matrices", n, e.Matrices())
		}
		check.Right++
	}
	for _, e := range m.Entries() {
		if !of[e.Name] {
			add(e.Name, false, "the model has no such weights")
		}
	}
	check.Fits = bad == 0 && check.Right > 0
	if err := m.Unchanged(); err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	if r.JSON {
		err = tool.WriteJSON(w, check)
	} else {
		for _, f := range check.Findings {
			fmt.Fprintf(w, "%s: %s\n", f.Tensor, f.Text)
		}
		_, err = fmt.Fprintf(w, "%s: right for %d of %d tensors of %s\n", check.File, check.Right,
			check.Tensors, check.Model)
	}
	if err != nil {
		return err
	}
	if !check.Fits {
		return fault.Errorf(fault.Broken, "%s: does not fit the model %s", r.In[0], r.Model)
	}
	return nil
}
