package main

import (
	"bytes"
	"os"
	"testing"
)

func TestReadme(t *testing.T) {
	old, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := replace(old)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, old) {
		t.Error("the table of architectures in README.md is old: run go generate ./arch")
	}
}

func TestNoTable(t *testing.T) {
	for _, text := range []string{"", begin, end + begin} {
		if _, err := replace([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
