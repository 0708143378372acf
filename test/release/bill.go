package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The parts of CycloneDX 1.6 that a bill has (cyclonedx.org/docs/1.6/json).
type (
	bom struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []licence  `json:"licenses,omitempty"`
		PURL       string     `json:"purl,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	licence struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// bill writes the bill of materials: every command with the modules of its build information, and their licences, from
// THIRD_PARTY.md.
func (r *release) bill(platforms []platform) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.tree, "docs", "THIRD_PARTY.md"))
	if err != nil {
		return "", err
	}
	licences := licencesOf(string(text))
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{r.date.Format(time.RFC3339),
		component{Type: "application", Ref: name, Name: name, Version: r.version, Licenses: licensed("MIT")}}}
	root := dependency{Ref: name}
	modules := map[string]component{}
	for _, p := range platforms {
		for _, c := range p.commands {
			path := filepath.Join(r.out, "bin", p.folder(), c)
			info, err := buildinfo.ReadFile(path)
			if err != nil {
				return "", err
			}
			sum, _, err := sumOf(path)
			if err != nil {
				return "", err
			}
			ref := p.folder() + "/" + c
			app := component{Type: "application", Ref: ref, Name: c, Version: r.version,
				Hashes: []hash{{"SHA-256", sum}}, Licenses: licensed("MIT")}
			for _, s := range info.Settings {
				app.Properties = append(app.Properties, property{"go:build:" + s.Key, s.Value})
			}
			b.Components = append(b.Components, app)
			root.DependsOn = append(root.DependsOn, ref)
			uses := dependency{Ref: ref}
			for _, m := range append([]*debug.Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}},
				info.Deps...) {
				lib, err := library(m, licences)
				if err != nil {
					return "", fmt.Errorf("%s: %w", path, err)
				}
				modules[lib.Ref] = lib
				uses.DependsOn = append(uses.DependsOn, lib.Ref)
			}
			slices.Sort(uses.DependsOn)
			b.Dependencies = append(b.Dependencies, uses)
		}
	}
	b.Dependencies = append([]dependency{root}, b.Dependencies...)
	for _, ref := range slices.Sorted(maps.Keys(modules)) {
		b.Components = append(b.Components, modules[ref])
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(b); err != nil {
		return "", err
	}
	file := fmt.Sprintf("%s_%s.cdx.json", name, r.version)
	return file, os.WriteFile(filepath.Join(r.out, file), out.Bytes(), 0o666)
}

// library returns a module as a component. Go's own has no row in THIRD_PARTY.md.
func library(m *debug.Module, licences map[string][]string) (component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	purl := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Path == "std" {
		c.Licenses = licensed("BSD-3-Clause")
		return c, nil
	}
	c.Licenses = licensed(licences[m.Path+" "+m.Version]...)
	if c.Licenses == nil {
		return c, fmt.Errorf("module %s %s: THIRD_PARTY.md has no licence", m.Path, m.Version)
	}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c, nil
}

// licencesOf reads the table of THIRD_PARTY.md: the licences of "MODULE VERSION".
func licencesOf(text string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || !strings.HasPrefix(cells[0], "| ") || strings.HasPrefix(cells[0], "| ---") {
			continue
		}
		all[strings.TrimPrefix(cells[0], "| ")+" "+cells[1]] = strings.Split(strings.TrimSuffix(cells[2], " |"), ", ")
	}
	return all
}

func licensed(ids ...string) []licence {
	var list []licence
	for _, id := range ids {
		var l licence
		l.License.ID = id
		list = append(list, l)
	}
	return list
}
