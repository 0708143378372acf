module example.org/importer

go 1.26

require ggforge v0.0.0

replace ggforge => ../..
