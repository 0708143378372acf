// Package widest has package simd use the vectors that the CPU has. That package reduces them to 128 bits on CPUs that lack
// VPCLMULQDQ at the full width, which no kernel uses: Intel's before Ice Lake and AMD's before Zen 3, among them most servers
// of their years. GODEBUG=simd=+ overrides that, but cannot be a default: the go command does not know the setting.
//
// Of the packages whose imports are initialized, the one with the least import path comes next (the linker's order; the
// language leaves it open). So this one comes before simd, which reads GODEBUG then, as long as it imports nothing that simd
// does not import, too: package strings would come after simd. TestWidth of package cpu fails if that changes.
package widest
