package main

import (
	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/publish/naming"
)

// warnOfNames warns of names of files in a repository, given by the paths of all its files, that programs misread.
func warnOfNames(cmd *cli.Command, paths []string) {
	for _, t := range naming.Tags(paths) {
		for _, text := range t.Warnings {
			tool.Warn(cmd, t.File+": "+text)
		}
	}
}
