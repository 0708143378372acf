package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestThirdParty fails when THIRD_PARTY.md does not match go.mod, or a module has no
// licence that is allowed.
func TestThirdParty(t *testing.T) {
	if err := run("../../../docs/THIRD_PARTY.md", true); err != nil {
		t.Fatal(err)
	}
}

// TestLinked checks that a module that only tests use is not listed among those linked into the commands.
func TestLinked(t *testing.T) {
	text, err := os.ReadFile("../../../docs/THIRD_PARTY.md")
	if err != nil {
		t.Fatal(err)
	}
	linked, others, ok := strings.Cut(string(text), "Only tests and tools")
	others, _, _ = strings.Cut(others, "\n## ")
	if !ok || strings.Contains(linked, "github.com/x448/float16") ||
		!strings.Contains(others, "github.com/x448/float16") || !strings.Contains(linked, "github.com/urfave/cli/v3") ||
		strings.Contains(others, "minio") {
		t.Errorf("linked:\n%s\nothers:\n%s", linked, others)
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"copyleft": {"LICENSE", "GNU GENERAL PUBLIC\n LICENSE Version 3", `says "general public license"`},
		"unknown":  {"LICENSE", "All rights reserved.", "no licence that is known"},
		"no licence": {"README", "permission is hereby granted, free of charge, to any person obtaining a copy",
			"no licence that is known"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := render([]module{{Path: "example.org/m", Version: "v1.0.0", Dir: dir}}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
