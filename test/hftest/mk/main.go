// Mk writes made-up checkpoints (package hftest) into directories.
//
//	go run ./test/hftest/mk             lists specs and variants
//	go run ./test/hftest/mk SPEC[/VARIANT] DIR
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"ggforge/test/hftest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mk:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		for _, s := range slices.Concat(hftest.Specs(), hftest.Encoders()) {
			var names []string
			for _, v := range s.All() {
				names = append(names, v.Name)
			}
			fmt.Printf("%-20s %-40s %-16s %s\n", s.Name, s.Class(), s.Tokenizer, strings.Join(names, " "))
		}
		return nil
	}
	if len(args) != 2 {
		return fmt.Errorf("want SPEC[/VARIANT] DIR")
	}
	name, variant, named := strings.Cut(args[0], "/")
	s := hftest.Lookup(name)
	if s == nil {
		return fmt.Errorf("no spec %q", name)
	}
	for _, v := range s.All() {
		if !named || v.Name == variant {
			dir, err := s.Write(args[1], v)
			fmt.Println(dir)
			return err
		}
	}
	return fmt.Errorf("spec %s has no variant %q", name, variant)
}
