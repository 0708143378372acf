package jinja

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats a time as Python does in the C locale. Unknown directives stay, as in the C library.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		from, pad := i-1, byte(0)
		if strings.IndexByte("-_0^#", format[i]) >= 0 && i+1 < len(format) {
			pad = format[i]
			i++
		}
		number := func(n, width int, with byte) {
			switch pad {
			case '-':
				width = 1
			case '_':
				with = ' '
			case '0':
				with = '0'
			}
			s := fmt.Sprint(n)
			for range width - len(s) {
				b.WriteByte(with)
			}
			b.WriteString(s)
		}
		text := func(s string) {
			if pad == '^' {
				s = strings.ToUpper(s)
			}
			b.WriteString(s)
		}
		hour12 := (t.Hour()+11)%12 + 1
		_, week := t.ISOWeek()
		isoYear, _ := t.ISOWeek()
		switch format[i] {
		case 'a':
			text(t.Format("Mon"))
		case 'A':
			text(t.Format("Monday"))
		case 'b', 'h':
			text(t.Format("Jan"))
		case 'B':
			text(t.Format("January"))
		case 'c':
			text(t.Format("Mon Jan _2 15:04:05 2006"))
		case 'C':
			number(t.Year()/100, 2, '0')
		case 'd':
			number(t.Day(), 2, '0')
		case 'D', 'x':
			text(t.Format("01/02/06"))
		case 'e':
			number(t.Day(), 2, ' ')
		case 'f':
			fmt.Fprintf(&b, "%06d", t.Nanosecond()/1000)
		case 'F':
			text(t.Format("2006-01-02"))
		case 'g':
			number(isoYear%100, 2, '0')
		case 'G':
			number(isoYear, 1, '0')
		case 'H':
			number(t.Hour(), 2, '0')
		case 'I':
			number(hour12, 2, '0')
		case 'j':
			number(t.YearDay(), 3, '0')
		case 'k':
			number(t.Hour(), 2, ' ')
		case 'l':
			number(hour12, 2, ' ')
		case 'm':
			number(int(t.Month()), 2, '0')
		case 'M':
			number(t.Minute(), 2, '0')
		case 'n':
			b.WriteByte('\n')
		case 'p':
			text(t.Format("PM"))
		case 'P':
			text(t.Format("pm"))
		case 'r':
			text(t.Format("03:04:05 PM"))
		case 'R':
			text(t.Format("15:04"))
		case 's':
			fmt.Fprint(&b, t.Unix())
		case 'S':
			number(t.Second(), 2, '0')
		case 't':
			b.WriteByte('\t')
		case 'T', 'X':
			text(t.Format("15:04:05"))
		case 'u':
			number((int(t.Weekday())+6)%7+1, 1, '0')
		case 'U':
			number((t.YearDay()+6-int(t.Weekday()))/7, 2, '0')
		case 'V':
			number(week, 2, '0')
		case 'w':
			number(int(t.Weekday()), 1, '0')
		case 'W':
			number((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2, '0')
		case 'y':
			number(t.Year()%100, 2, '0')
		case 'Y':
			number(t.Year(), 1, '0')
		case 'z', 'Z': // the time of the reference has no zone
		case '%':
			b.WriteByte('%')
		default:
			b.WriteString(format[from : i+1])
		}
	}
	return b.String()
}
