package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
)

// real is a number that may be missing: JSON has no NaN.
type real float64

func (n real) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// matrixReport is the JSON output; docs/json.md describes the fields.
type matrixReport struct {
	File      string        `json:"file"`
	Datasets  []string      `json:"datasets"`
	Chunks    int           `json:"chunk_count"`
	ChunkSize int           `json:"chunk_size"`
	Tensors   []tensorStats `json:"tensors"`
	Layers    []layerStats  `json:"layers"`
}

type tensorStats struct {
	Tensor        string  `json:"tensor"`
	Layer         int     `json:"layer"` // -1 outside of layers
	Counts        []int64 `json:"counts"`
	Unseen        int     `json:"unseen"`
	Columns       int64   `json:"columns"`
	Mean          real    `json:"mean"`
	Deviation     real    `json:"std_deviation"`
	Skewness      real    `json:"skewness"`
	Kurtosis      real    `json:"kurtosis"`
	Entropy       real    `json:"entropy"`
	Spread        real    `json:"h_norm"`
	Sum           real    `json:"sum_sq"`
	Gain          real    `json:"gain"`
	Distance      real    `json:"l2_dist"`
	Cosine        real    `json:"cossim"`
	Pearson       real    `json:"pearson"`
	Covariance    real    `json:"covariance"`
	Min           real    `json:"min"`
	Max           real    `json:"max"`
	Dead          int64   `json:"dead"`
	Concentration real    `json:"concentration"`
	Dense         real    `json:"z_density"`
}

type layerStats struct {
	Layer      int  `json:"layer"`
	Sum        real `json:"sum_sq"`
	Gain       real `json:"gain"`
	Distance   real `json:"l2_dist"`
	Cosine     real `json:"cossim"`
	Pearson    real `json:"pearson"`
	Covariance real `json:"covariance"`
}

func showMatrix(ctx context.Context, cmd *cli.Command) error {
	r, err := parseRead(cmd)
	if err != nil {
		return err
	}
	sums, err := r.load(cmd)
	if err != nil {
		return err
	}
	if sums.Len() == 0 {
		return fault.Errorf(fault.Broken, "%s: an importance matrix without tensors", r.In[0])
	}
	report := matrixReport{File: r.In[0], Datasets: sums.Datasets, Chunks: sums.Chunks(), ChunkSize: sums.ChunkSize()}
	tensors, layers := sums.Describe()
	for _, t := range tensors {
		report.Tensors = append(report.Tensors, tensorStats{t.Tensor, t.Layer, t.Counts, t.Unseen, t.Columns,
			real(t.Mean), real(t.Deviation), real(t.Skewness), real(t.Kurtosis), real(t.Entropy),
			real(t.Spread), real(t.Sum),
			real(t.Gain), real(t.Distance), real(t.Cosine), real(t.Pearson), real(t.Covariance), real(t.Min),
			real(t.Max), t.Dead, real(t.Concentration), real(t.Dense)})
	}
	for _, l := range layers {
		report.Layers = append(report.Layers, layerStats{l.Layer, real(l.Sum), real(l.Gain), real(l.Distance),
			real(l.Cosine), real(l.Pearson), real(l.Covariance)})
	}
	w := tool.Output(ctx, cmd)
	if r.JSON {
		return tool.WriteJSON(w, report)
	}
	return report.write(w)
}

// write prints the report as text.
func (r *matrixReport) write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d tensors, %d chunks of %d tokens", r.File, len(r.Tensors), r.Chunks, r.ChunkSize)
	if len(r.Datasets) > 0 {
		fmt.Fprintf(w, ", %q", r.Datasets)
	}
	wide := len("tensor")
	for _, t := range r.Tensors {
		wide = max(wide, len(t.Tensor))
	}
	fmt.Fprintf(w, "\n\n%-*s %9s %9s %9s %11s %8s %14s %7s %12s %8s %8s %8s %9s %11s %11s %6s %7s %7s\n", wide,
		"tensor", "mean", "std", "skew", "kurt", "H", "sum E[a^2]", "gain", "l2 dist", "cossim", "pearson", "cov",
		"unseen", "min", "max", "dead", "top 1%", "dense")
	for _, t := range r.Tensors {
		fmt.Fprintf(w, "%-*s %9.4f %9.4f %9.4f %11.4f %7.2f%% %14.4f %7.2f %12.4f %8.4f %8.4f %8.4f %9s %11.4g "+
			"%11.4g %6d %6.2f%% %6.2f%%\n", wide, t.Tensor, t.Mean, t.Deviation, t.Skewness, t.Kurtosis,
			t.Spread, t.Sum,
			t.Gain, t.Distance, t.Cosine, t.Pearson, t.Covariance, fmt.Sprintf("%d of %d", t.Unseen, len(t.Counts)),
			t.Min, t.Max, t.Dead, 100*t.Concentration, 100*t.Dense)
	}
	fmt.Fprintf(w, "\n%5s %14s %7s %12s %8s %8s %9s\n", "layer", "sum E[a^2]", "gain", "l2 dist", "cossim",
		"pearson", "cov")
	for _, l := range r.Layers {
		name := fmt.Sprint(l.Layer)
		if l.Layer < 0 {
			name = "-"
		}
		if _, err := fmt.Fprintf(w, "%5s %14.4f %7.2f %12.4f %8.4f %8.4f %9.4f\n", name, l.Sum, l.Gain, l.Distance,
			l.Cosine, l.Pearson, l.Covariance); err != nil {
			return err
		}
	}
	return nil
}
