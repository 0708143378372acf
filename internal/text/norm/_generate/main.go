// Generate writes the tables of normal forms, classes.txt and mappings.txt, from the version of golang.org/x/text in
// go.mod, whose tables for Go 1.26 and 1.27 are those of Unicode 15.0.0. It is a module of its own so that programs can
// be linked with another version. Its test (go test) checks the sums of package norm's test.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const version = "15.0.0"

func main() {
	dir := flag.String("o", "..", "the `folder` to write to")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	if norm.Version != version {
		return fmt.Errorf("golang.org/x/text has the data of Unicode %s; expected %s", norm.Version, version)
	}
	for name, text := range map[string]string{"classes.txt": classes(), "mappings.txt": mappings()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func classes() string {
	var ranges [256][][2]rune
	for c := rune(0); c <= utf8.MaxRune; c++ {
		ccc := norm.NFD.PropertiesString(string(c)).CCC()
		if r := ranges[ccc]; len(r) > 0 && r[len(r)-1][1] == c-1 {
			r[len(r)-1][1] = c
		} else if ccc > 0 {
			ranges[ccc] = append(r, [2]rune{c, c})
		}
	}
	var b strings.Builder
	for class, list := range ranges {
		for i, r := range list {
			switch {
			case i == 0:
				fmt.Fprintf(&b, "%d\t", class)
			default:
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%X", r[0])
			if r[1] > r[0] {
				fmt.Fprintf(&b, "-%X", r[1])
			}
		}
		if list != nil {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func mappings() string {
	var b strings.Builder
	for c := rune(0); c <= utf8.MaxRune; c++ {
		s := string(c)
		canonical, compatibility := norm.NFD.String(s), norm.NFKD.String(s)
		switch {
		case !utf8.ValidRune(c), 0xAC00 <= c && c <= 0xD7A3, compatibility == s:
			continue
		case canonical == s:
			write(&b, c, "~", compatibility)
		case norm.NFC.String(s) != s:
			write(&b, c, ">", canonical)
		default: // x/text has full decompositions: all parts but the last compose to the first of the pair
			_, n := utf8.DecodeLastRuneInString(canonical)
			cut := len(canonical) - n
			write(&b, c, "=", norm.NFC.String(canonical[:cut])+canonical[cut:])
		}
	}
	return b.String()
}

func write(b *strings.Builder, c rune, kind, parts string) {
	fmt.Fprintf(b, "%X %s", c, kind)
	for _, r := range parts {
		fmt.Fprintf(b, " %X", r)
	}
	b.WriteByte('\n')
}
