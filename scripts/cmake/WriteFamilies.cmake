# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# {"conv1d", "conv"}, for every primitive that a host/<family>/<name>_spec.cpp describes: rows of an array.
set(rows "")
foreach(spec IN LISTS SPECS)
  get_filename_component(folder ${spec} DIRECTORY)
  get_filename_component(family ${folder} NAME)
  file(STRINGS ${spec} definitions REGEX "^const PrimitiveSpec& [a-z0-9_]+_spec\\(\\) ")
  foreach(definition IN LISTS definitions)
    string(REGEX REPLACE "^const PrimitiveSpec& ([a-z0-9_]+)_spec.*$" "\\1" name "${definition}")
    string(APPEND rows "{\"${name}\", \"${family}\"},\n")
  endforeach()
endforeach()
file(WRITE ${OUTPUT} "${rows}")
