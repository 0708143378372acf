module ggforge/internal/text/norm/_generate

go 1.26

require golang.org/x/text v0.32.0
