package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// machine describes where and how the numbers are made: Markdown that ends with
// an empty line.
func machine(ctx context.Context, opt *options) string {
	list := append(facts(),
		[2]string{"CPUs", fmt.Sprint(runtime.NumCPU())},
		[2]string{"Go", fmt.Sprintf("%s, %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)},
		[2]string{"vectors", vectors()},
		[2]string{"date", time.Now().UTC().Format("2006-01-02 15:04 UTC")})
	if v, err := exec.CommandContext(ctx, filepath.Join(opt.bin, "ggquant"), "--version").Output(); err == nil {
		list = append(list, [2]string{"commands", strings.TrimSpace(string(v))})
	}
	if opt.root != "" {
		list = append(list, [2]string{"reference", referenceFacts(opt.root)})
	} else {
		list = append(list, [2]string{"reference", "not installed (no ORACLE_ROOT)"})
	}
	command := strings.Join(os.Args, " ")
	if opt.root != "" {
		command = "ORACLE_ROOT=" + opt.root + " " + command
	}
	list = append(list, [2]string{"command", "`" + command + "`"})
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "* %s: %s\n", f[0], f[1])
	}
	b.WriteByte('\n')
	return b.String()
}

func vectors() string {
	if n := width(); n > 0 {
		return fmt.Sprintf("%d bits", n)
	}
	return "none: scalar kernels"
}
