//go:build !linux

package main

import (
	"errors"
	"math"
	"os"
	"runtime"
	"time"
)

var begin = time.Now()

// threadSeconds is wall time: there is no clock for threads here.
func threadSeconds() float64 { return time.Since(begin).Seconds() }

// processSeconds is wall time times the threads that may run.
func processSeconds() float64 { return threadSeconds() * float64(runtime.GOMAXPROCS(0)) }

// freeDisk is not known.
func freeDisk(string) (int64, error) { return math.MaxInt64, nil }

func flush() {}

func maxRSS(*os.ProcessState) int64 { return 0 }

func ownMemory(int) int64 { return 0 }

func facts() [][2]string { return nil }

func referenceFacts(string) string { return "unknown version" }

func writtenBytes(int) int64 { return -1 }

func diskBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
