package main

import (
	"bytes"
	"os"
	"testing"
)

// The file in the package is what the generator writes.
func TestGeneratedFileIsUpToDate(t *testing.T) {
	want, err := generate(tablesJSON)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../quants/internal/codebook/grids_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("grids_gen.go is out of date: run go generate ./quants/internal/codebook")
	}
}

func TestGenerateRefusesOtherSizes(t *testing.T) {
	for _, data := range []string{"{}", "[", `{"iq2xxs":{"n":256,"dim":8,"bits":2,"codes":[0]}}`} {
		if _, err := generate([]byte(data)); err == nil {
			t.Errorf("no error for %s", data)
		}
	}
}
