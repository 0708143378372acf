package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// threadSeconds returns the CPU time of this thread.
func threadSeconds() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return float64(t.Nano()) / 1e9
}

// processSeconds returns the CPU time of this process.
func processSeconds() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return float64(t.Nano()) / 1e9
}

// freeDisk returns the bytes that can be written in the folder.
func freeDisk(dir string) (int64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return int64(s.Bavail) * s.Bsize, err
}

// flush waits until all that was written is on the disk.
func flush() { unix.Sync() }

// maxRSS returns the largest resident memory that a process had, mapped files
// included.
func maxRSS(p *os.ProcessState) int64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}

// ownMemory returns the anonymous and shared resident memory of a process.
func ownMemory(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	kb := func(name string) int64 {
		n, _ := strconv.ParseInt(strings.TrimSuffix(field(data, name), " kB"), 10, 64)
		return n
	}
	return (kb("RssAnon") + kb("RssShmem")) << 10
}

// writtenBytes waits until a child has ended, without reaping it, and returns the number of bytes that it has
// written, to files and pipes; -1 if the system does not count them.
func writtenBytes(pid int) int64 {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return -1
		}
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return -1
	}
	n, err := strconv.ParseInt(field(data, "wchar"), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// diskBytes returns how many bytes of a disk a file takes.
func diskBytes(path string) (int64, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return 512 * st.Blocks, err
}

// field returns the value of the first line "name: value".
func field(data []byte, name string) string {
	for line := range bytes.Lines(data) {
		if k, v, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(k)) == name {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}

// features are the CPU features that reports list.
var features = []string{"sse2", "sse4_1", "avx", "f16c", "fma", "avx2", "bmi2", "avx512f", "avx512bw", "avx512vl",
	"avx512_vnni",
	"asimd", "asimdhp", "asimddp", "sve"}

// facts describe the machine, by name and value.
func facts() [][2]string {
	var list [][2]string
	add := func(name, value string) {
		if value != "" {
			list = append(list, [2]string{name, value})
		}
	}
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	model := field(cpu, "model name")
	if n := field(cpu, "cpu family"); n != "" {
		model += fmt.Sprintf(" (family %s, model %s, stepping %s)", n, field(cpu, "model"), field(cpu, "stepping"))
	}
	add("CPU", model)
	flags := strings.Fields(field(cpu, "flags") + " " + field(cpu, "Features"))
	add("CPU features", strings.Join(slices.DeleteFunc(slices.Clone(features),
		func(f string) bool { return !slices.Contains(flags, f) }), " "))
	memory, _ := os.ReadFile("/proc/meminfo")
	if kb, err := strconv.ParseInt(strings.TrimSuffix(field(memory, "MemTotal"), " kB"), 10, 64); err == nil {
		add("memory", fmt.Sprintf("%.1f GB", float64(kb)*1024/1e9))
	}
	release, _ := os.ReadFile("/etc/os-release")
	name := ""
	for line := range strings.Lines(string(release)) {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			name = strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		release, _, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), "-") // the rest names a build
		name += ", " + unix.ByteSliceToString(u.Sysname[:]) + " " + release
	}
	add("system", strings.TrimPrefix(name, ", "))
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		add("load before", strings.Join(strings.Fields(string(load))[:3], " "))
	}
	return list
}

// referenceFacts describes what is installed in the chroot.
func referenceFacts(root string) string {
	out, err := exec.Command("chroot", root, "dpkg-query", "-W", "-f", "${Package} ${Version}, ",
		"llama.cpp-tools", "libggml0", "python3-torch", "python3-numpy", "python3-transformers").Output()
	if err != nil {
		return "unknown version"
	}
	return strings.TrimSuffix(string(out), ", ") + " (Debian packages)"
}
