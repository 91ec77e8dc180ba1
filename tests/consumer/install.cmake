# cmake -D build=<build tree> -D prefix=<folder> -D config=<build type> -P install.cmake: installs into an empty folder.
file(REMOVE_RECURSE ${prefix})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${build} --prefix ${prefix} --config ${config}
                        COMMAND_ERROR_IS_FATAL ANY)
